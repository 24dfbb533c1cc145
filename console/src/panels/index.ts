export { CreateJobPanel } from "./CreateJobPanel";
export { HealthPanel } from "./HealthPanel";
