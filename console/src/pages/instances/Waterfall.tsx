import { Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { useNow } from "@/app/clock";
import type { InstanceOut } from "@/api";
import { between, Duration, formatDuration, When } from "@/parts";
import { type Span, spansOf } from "./spans";
import classes from "./Waterfall.module.css";

interface WaterfallProps {
  instance: InstanceOut;
  /** The start of the first step of a durable function. The attempt itself names the last claim, after a sleep or wait. */
  begunAt?: string | undefined;
}

/** An instance's life: its steps with the time between them, and its waits and attempts to scale. */
export function Waterfall({ instance, begunAt }: WaterfallProps) {
  const now = useNow();
  const spans = spansOf(instance, now, begunAt);
  return (
    <>
      <Steps instance={instance} begunAt={begunAt} />
      {spans.length > 0 && <Lines spans={spans} />}
    </>
  );
}

function Steps({ instance, begunAt }: WaterfallProps) {
  const { t } = useTranslation(["instances", "common"]);
  const now = useNow();
  const claimed = instance.attempts?.find((attempt) => !attempt.late && attempt.startedAt)?.startedAt ?? instance.startedAt;
  const first = begunAt && (claimed === null || new Date(begunAt) < new Date(claimed)) ? begunAt : claimed;
  const isDue = new Date(instance.fireTime).getTime() <= now || first !== null;
  const steps = [
    { name: "scheduled", at: instance.createdAt, isReached: true },
    { name: "due", at: instance.fireTime, isReached: isDue },
    { name: "started", at: first, isReached: first !== null },
    { name: "finished", at: instance.finishedAt, isReached: instance.finishedAt !== null },
  ] as const;
  return (
    <ol className={classes.steps}>
      {steps.map((step, place) => {
        const next = steps[place + 1];
        const gap = between(step.at, next?.at);
        return (
          <li
            key={step.name}
            className={classes.step}
            data-reached={step.isReached || undefined}
            data-passed={(step.isReached && next?.isReached) || undefined}
          >
            {gap !== null && gap >= 0 && (
              <span className={classes.gap}>
                <span className="numbers">{formatDuration(gap)}</span>
              </span>
            )}
            <Text size="sm" fw={600}>
              {t(`step.${step.name}`)}
            </Text>
            <Text size="sm" component="div">
              <When at={step.at} precision="millis" />
            </Text>
          </li>
        );
      })}
    </ol>
  );
}

function Lines({ spans }: { spans: readonly Span[] }) {
  const { t } = useTranslation(["instances", "common"]);
  const begin = spans[0]!.from;
  const length = Math.max(1, spans.at(-1)!.to - begin);
  const share = (span: number): string => `${(span / length) * 100}%`;
  return (
    <div className={classes.lines}>
      {spans.map((span) => (
        <Line key={`${span.kind} ${span.from} ${span.attempt}`} label={t(`span.${span.kind}`, { number: span.attempt })}>
          <div className={classes.track}>
            <div
              className={classes.bar}
              data-pause={span.kind === "attempt" ? undefined : true}
              style={{
                left: `min(${share(span.from - begin)}, 100% - 3px)`,
                width: share(span.to - span.from),
                ...(span.state && { background: `var(--state-${span.state}-solid)` }),
              }}
            />
          </div>
          <Duration ms={span.to - span.from} />
        </Line>
      ))}
    </div>
  );
}

function Line({ label, children }: { label: string; children: React.ReactNode }) {
  return (
    <>
      <span>{label}</span>
      {children}
    </>
  );
}
