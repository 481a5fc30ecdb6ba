// The bench of callers' own kernels.

import { refuse, showBench } from "../ui/page.ts";
import { SYSTEMS, WORKLOADS } from "./workloads.ts";

try {
  void showBench({ workloads: WORKLOADS, systems: SYSTEMS });
} catch (error) {
  refuse(error);
}
