"""The noise that a running application remembers, as a dependency of endpoints."""

from typing import Annotated

from pullback_service.machines.noise_cache import NoiseMemory
from pullback_service.runtime import instance_of

KnownNoise = Annotated[NoiseMemory, instance_of(NoiseMemory)]
