import type { Route } from "../route.ts";
import { ACCESS_ROUTES } from "./access.ts";
import { BASELINE_ROUTES } from "./baseline.ts";
import { CA_ROUTES } from "./ca.ts";
import { CONFIG_ROUTES } from "./config.ts";
import { CORDON_ROUTES } from "./cordon.ts";
import { DISK_ROUTES } from "./disks.ts";
import { EVENT_ROUTES } from "./events.ts";
import { HANDOVER_ROUTES } from "./handover.ts";
import { INSTALL_ROUTES } from "./install.ts";
import { LIFECYCLE_ROUTES } from "./lifecycle.ts";
import { LOG_ROUTES } from "./logs.ts";
import { METRICS_ROUTES } from "./metrics.ts";
import { openApiRoute } from "./openapi.ts";
import { OPERATION_ROUTES } from "./operations.ts";
import { RESET_ROUTES } from "./reset.ts";
import { SERVICE_ROUTES } from "./services.ts";
import { STATUS_ROUTES } from "./status.ts";
import { VOLUME_ROUTES } from "./volumes.ts";

/** All but enrolment, which is for strangers. */
export const ROUTES: readonly Route[] = [
  ...STATUS_ROUTES,
  ...CONFIG_ROUTES,
  ...BASELINE_ROUTES,
  ...OPERATION_ROUTES,
  ...CA_ROUTES,
  ...EVENT_ROUTES,
  ...SERVICE_ROUTES,
  ...LOG_ROUTES,
  ...LIFECYCLE_ROUTES,
  ...CORDON_ROUTES,
  ...HANDOVER_ROUTES,
  ...ACCESS_ROUTES,
  ...RESET_ROUTES,
  ...INSTALL_ROUTES,
  ...VOLUME_ROUTES,
  ...DISK_ROUTES,
  ...METRICS_ROUTES,
  openApiRoute(() => ROUTES),
];
