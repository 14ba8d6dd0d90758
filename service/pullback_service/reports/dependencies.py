"""The intake of a running application, as a dependency of endpoints."""

from typing import Annotated

from pullback_service.reports.intake import Intake
from pullback_service.runtime import instance_of

KnownIntake = Annotated[Intake, instance_of(Intake)]
