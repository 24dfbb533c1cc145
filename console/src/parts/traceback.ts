/** A frame of a Python traceback, with the lines of code below it. */
export interface Frame {
  file: string;
  line: string;
  name: string;
  code: string;
  /** Of Python itself or of an installed package, not of the application. */
  isLibrary: boolean;
}

/** A piece of an error: text, or the frames of one traceback, the outermost first. */
export type Piece = { text: string } | { frames: Frame[] };

const FRAME = /^\s*(?:\|\s*)*File "(.+)", line (\d+)(?:, in (.+))?$/;
const LIBRARY = /[/\\](?:site|dist)-packages[/\\]|[/\\]lib(?:64)?[/\\]python\d|^<frozen /i;

/** An error cut into its text and the frames of its tracebacks; a text without frames stays one piece. */
export function piecesOf(error: string): Piece[] {
  const pieces: Piece[] = [];
  let text: string[] = [];
  let frames: Frame[] = [];
  const endText = (): void => {
    if (text.some((line) => line.trim() !== "")) pieces.push({ text: text.join("\n") });
    text = [];
  };
  const endFrames = (): void => {
    if (frames.length > 0) pieces.push({ frames });
    frames = [];
  };
  let depth = 0;
  for (const line of error.split("\n")) {
    const [, file, number, name] = FRAME.exec(line) ?? [];
    const last = frames.at(-1);
    if (file !== undefined && number !== undefined) {
      endText();
      depth = indentOf(line);
      frames.push({ file, line: number, name: name ?? "", code: "", isLibrary: LIBRARY.test(file) });
    } else if (last && line.trim() !== "" && indentOf(line) > depth) {
      last.code += `${last.code && "\n"}${line.slice(depth + 2)}`;
    } else if (last && /^\s*\[Previous line repeated/.test(line)) {
      last.code += `\n${line.trim()}`;
    } else {
      endFrames();
      text.push(line);
    }
  }
  endText();
  endFrames();
  return pieces;
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

/** The frames of the application, the innermost first, and those of libraries behind them. */
export function inReadingOrder(frames: readonly Frame[]): { own: Frame[]; library: Frame[] } {
  const inward = frames.toReversed();
  return { own: inward.filter((frame) => !frame.isLibrary), library: inward.filter((frame) => frame.isLibrary) };
}
