// The bench of embedders.

import { showBench } from "../ui/page.ts";
import { SYSTEMS } from "./systems.ts";
import { WORKLOADS } from "./workloads.ts";

void showBench({ workloads: WORKLOADS, systems: SYSTEMS });
