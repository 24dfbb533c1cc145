import type { ThresholdsIn } from "@/api";
import { quoted, type Recipe } from "@/parts/recipes";

/** Changes the settings of the rules. */
export function thresholdSetting(body: ThresholdsIn): Recipe {
  const settings = Object.entries(body).map(([name, value]) => quoted(`${name}=${String(value)}`));
  return { method: "PUT", path: "/api/v1/scheduler/thresholds", body, cli: ["horai governor thresholds", ...settings].join(" ") };
}
