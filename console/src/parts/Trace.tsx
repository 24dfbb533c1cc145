import { ActionIcon, CopyButton, Tooltip } from "@mantine/core";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { Command } from "./Command";
import { Icon } from "./Icon";
import classes from "./Trace.module.css";
import { type Frame, inReadingOrder, piecesOf } from "./traceback";

/** An error that is shown whole: the frames of a Python traceback are folded, those of the application before those of libraries. */
export function Trace({ text }: { text: string }) {
  const { t } = useTranslation();
  const pieces = useMemo(() => piecesOf(text), [text]);
  if (pieces.every((piece) => "text" in piece)) return <Command isWrapped text={text} />;
  return (
    <div className={classes.trace}>
      <div className={classes.pieces}>
        <Pieces text={text} />
      </div>
      <CopyButton value={text}>
        {({ copied, copy }) => (
          <Tooltip label={copied ? t("copy.done") : t("copy.copy")}>
            <ActionIcon variant="subtle" color="gray" onClick={copy} aria-label={t("copy.copy")}>
              <Icon name={copied ? "check" : "copy"} size={16} />
            </ActionIcon>
          </Tooltip>
        )}
      </CopyButton>
    </div>
  );
}

/* An error never changes, and its frames may be equal: their places are their keys. */
/* oxlint-disable react/no-array-index-key */

/** The pieces of an error without a frame around them, as in a line of a log. */
export function Pieces({ text }: { text: string }) {
  const pieces = useMemo(() => piecesOf(text), [text]);
  return pieces.map((piece, place) => {
    const key = `${place}`;
    return "text" in piece ? (
      <pre key={key} className={classes.text}>
        {piece.text}
      </pre>
    ) : (
      <Frames key={key} frames={piece.frames} />
    );
  });
}

function Frames({ frames }: { frames: readonly Frame[] }) {
  const { t } = useTranslation();
  const { own, library } = inReadingOrder(frames);
  return (
    <div className={classes.frames}>
      {own.map((frame, place) => (
        <One key={`${frame.file} ${frame.line} ${place}`} frame={frame} isOpen={place === 0} />
      ))}
      {library.length > 0 && (
        <details open={own.length === 0}>
          <summary>{t("trace.library", { count: library.length })}</summary>
          <div className={classes.library}>
            {library.map((frame, place) => (
              <One key={`${frame.file} ${frame.line} ${place}`} frame={frame} isOpen={false} />
            ))}
          </div>
        </details>
      )}
    </div>
  );
}

function One({ frame, isOpen }: { frame: Frame; isOpen: boolean }) {
  return (
    <details open={isOpen} data-frame={frame.isLibrary ? "library" : "own"}>
      <summary>
        <b>{frame.name}</b> <span>{`${frame.file}:${frame.line}`}</span>
      </summary>
      {frame.code && <pre>{frame.code}</pre>}
    </details>
  );
}
