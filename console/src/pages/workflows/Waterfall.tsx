import { Text, UnstyledButton } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { RunNodeOut, RunOut } from "@/api";
import { useNow } from "@/app/clock";
import { lookOf, StateMark } from "@/parts";
import { formatDuration } from "@/parts/time";
import { useProgress } from "./progress";
import { inOrder, labelOf, type Scale, scaleOf, spanOf } from "./spans";
import classes from "./Waterfall.module.css";

interface WaterfallProps {
  run: RunOut;
  nodes: readonly RunNodeOut[];
  chosen: string | undefined;
  onChoose: (name: string) => void;
}

const TICKS = [0, 0.25, 0.5, 0.75, 1];

/** When each node ran, one row each, on the time of the run. */
export function Waterfall({ run, nodes, chosen, onChoose }: WaterfallProps) {
  const { t } = useTranslation("workflows");
  const now = useNow();
  const scale = scaleOf(run, nodes, now);
  if (nodes.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        {t("waterfall.none")}
      </Text>
    );
  }
  return (
    <div className={classes.chart}>
      <div className={classes.axis} aria-hidden>
        {TICKS.map((tick) => (
          <span key={tick} style={{ left: `${tick * 100}%` }}>
            {formatDuration(tick * scale.length)}
          </span>
        ))}
      </div>
      {inOrder(nodes).map((node) => (
        <Row key={node.name} node={node} scale={scale} now={now} isChosen={node.name === chosen} onChoose={onChoose} />
      ))}
    </div>
  );
}

interface RowProps {
  node: RunNodeOut;
  scale: Scale;
  now: number;
  isChosen: boolean;
  onChoose: (name: string) => void;
}

function Row({ node, scale, now, isChosen, onChoose }: RowProps) {
  const { t } = useTranslation();
  const span = spanOf(node, scale, now);
  const progressOf = useProgress();
  const lasted = span ? formatDuration(span.width * scale.length) : t(`state.${node.state}`);
  const told = [lasted, node.map && progressOf(node.map)].filter(Boolean).join(" · ");
  const label = labelOf(span);
  return (
    <UnstyledButton className={classes.row} aria-pressed={isChosen} onClick={() => onChoose(node.name)}>
      <span className={classes.name} title={node.name}>
        <StateMark state={node.state} />
        <span>{node.name}</span>
      </span>
      <span className={classes.track}>
        {span && (
          <i
            className={classes.bar}
            data-state={node.state}
            style={{ left: `${span.from * 100}%`, width: `${span.width * 100}%`, background: `var(--state-${lookOf(node.state)}-solid)` }}
          />
        )}
        <small className={classes.length} data-place={label.place} style={{ left: `${label.left * 100}%`, right: `${label.right * 100}%` }}>
          <span>{told}</span>
        </small>
      </span>
    </UnstyledButton>
  );
}
