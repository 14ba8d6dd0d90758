"""The values of `--suite`."""


def refuse_unknown_suite(text: str) -> None:
    """Refuse a suite, or a part of one (`quick:poly9*`), that no agent knows: one would find out when somebody has waited."""
    from pullback_runners.suites import find_suite, narrowed_suite

    find_suite(narrowed_suite(text)[0])
