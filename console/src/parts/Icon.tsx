/** Line icons on a grid of 24, drawn here: a set from a package would be most of the download. */
const PATHS = {
  overview: "M4 13h6V4H4zM14 20h6V4h-6zM4 20h6v-3H4z",
  jobs: "M5 7h14M5 12h14M5 17h9",
  instances: "M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17zM12 7.5V12l3 2",
  workflows: "M9 6a3 3 0 1 1-6 0 3 3 0 0 1 6 0zM21 6a3 3 0 1 1-6 0 3 3 0 0 1 6 0zM15 18a3 3 0 1 1-6 0 3 3 0 0 1 6 0zM6 9c0 3 3 3 4.5 6M18 9c0 3-3 3-4.5 6",
  queues: "M4 5h16v5H4zM4 14h16v5H4zM8 7.5h.01M8 16.5h.01",
  deadLetters: "M4 6h16v12H4zM4 7l8 6 8-6",
  refresh: "M20 11a8 8 0 0 0-14.3-4L4 9M4 4.5V9h4.5M4 13a8 8 0 0 0 14.3 4l1.7-2M20 19.5V15h-4.5",
  reconcilers: "M8 4 4 8l4 4M4 8h13M16 20l4-4-4-4M20 16H7",
  forecast: "M4 19V5M4 19h16M8 15l3.5-4 3 2.5L20 8",
  search: "M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM20 20l-4.8-4.8",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M5.3 18.7l1.4-1.4M17.3 6.7l1.4-1.4",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z",
  auto: "M12 3.5a8.5 8.5 0 1 0 0 17zM12 3.5a8.5 8.5 0 0 1 0 17",
  language: "M4 6h9M8.5 4v2M11 6c-.7 4-3 7-7 9M6 9c1 3 3 5 6 6M12 20l4-10 4 10M13.4 17h5.2",
  globe: "M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17zM3.5 12h17M12 3.5c5 5 5 12 0 17M12 3.5c-5 5-5 12 0 17",
  play: "M8 5.5v13l10.5-6.5z",
  pause: "M8 5v14M16 5v14",
  plus: "M12 5v14M5 12h14",
  close: "M6 6l12 12M18 6 6 18",
  check: "M5 12.5l4.5 4.5L19 7.5",
  copy: "M9 9h10v10H9zM15 9V5H5v10h4",
  edit: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
  trash: "M5 7h14M10 7V4.5h4V7M7 7l1 13h8l1-13",
  replay: "M4 12a8 8 0 1 0 2.5-5.8L4 8.5M4 4v4.5h4.5",
  backfill: "M4 5v14M8 12h12M12 8l-4 4 4 4",
  filter: "M4 5h16l-6 7.5V19l-4-2v-4.5z",
  download: "M12 4v11M8 11l4 4 4-4M5 20h14",
  external: "M14 4h6v6M20 4l-9 9M18 14v5H5V6h5",
  warning: "M12 4 2.5 20h19zM12 10v4.5M12 17.5h.01",
  info: "M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17zM12 11v5M12 8h.01",
  lock: "M6 11h12v9H6zM9 11V8a3 3 0 0 1 6 0v3",
  more: "M6 12h.01M12 12h.01M18 12h.01",
  left: "M15 5l-7 7 7 7",
  right: "M9 5l7 7-7 7",
  down: "M5 9l7 7 7-7",
  menu: "M4 7h16M4 12h16M4 17h16",
  node: "M4 5h16v10H4zM9 19h6M12 15v4",
  governor: "M4 17a8 8 0 1 1 16 0M12 17l4-6M12 17h.01",
  alerts: "M6 16V11a6 6 0 0 1 12 0v5l1.5 2h-15zM10 20.5h4",
  signal: "M20.5 3.5 3.5 10l7 3.5 3.5 7zM20.5 3.5l-10 10",
  assets: "M4 6.5a8 3 0 0 1 16 0 8 3 0 0 1-16 0zM4 6.5v11a8 3 0 0 0 16 0v-11M4 12a8 3 0 0 0 16 0",
  archive: "M4 5h16v4H4zM6 9v10h12V9M10 13h4",
  calendar: "M5 6h14v14H5zM5 10h14M9 3.5V7M15 3.5V7",
} as const;

export type IconName = keyof typeof PATHS;

/** Decoration: whatever it stands for is also said in words beside it. */
export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth={1.75}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden
      focusable={false}
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
