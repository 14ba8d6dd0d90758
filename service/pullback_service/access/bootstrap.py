"""The bootstrap token: the secret of PULLBACK_TOKEN_FILE, which has every right and makes the other tokens."""

from pullback_service.logs import logger
from pullback_service.settings import Settings

SHORTEST = 20


def warn_of_short_token(settings: Settings) -> None:
    """A line in the log where it could be guessed."""
    token = settings.token()
    if token is not None and len(token) < SHORTEST:
        logger.warning(
            "bootstrap_token_short",
            reason=f"The token of PULLBACK_TOKEN_FILE has {len(token)} characters: create one of at least "
            f"{SHORTEST} with `head -c 24 /dev/urandom | base64`.",
        )
