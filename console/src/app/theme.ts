import { createTheme, type CSSVariablesResolver, type MantineColorsTuple, mergeThemeOverrides } from "@mantine/core";
import { STATES } from "@/generated/states";

/** The one accent: a deep teal. 7 carries white text on light, 6 on dark. */
const teal: MantineColorsTuple = [
  "#eff9f7",
  "#d9efeb",
  "#b3ddd6",
  "#86c7bd",
  "#57ada1",
  "#359388",
  "#1f7b72",
  "#14665f",
  "#0f524d",
  "#0b3f3c",
];

/** What cannot be taken back. Like the accent, 7 carries white text on light, 6 on dark. */
const red: MantineColorsTuple = [
  "#fdeaec",
  "#fad4d8",
  "#f8b6bc",
  "#f79aa2",
  "#e5626d",
  "#d23a47",
  "#c42f3c",
  "#b3202c",
  "#941a24",
  "#75151d",
];

/** Greys of the dark scheme, with a breath of the accent. */
const dark: MantineColorsTuple = [
  "#d7dedf",
  "#b6c0c2",
  "#98a4a7",
  "#5f6b6e",
  "#323b3e",
  "#272f31",
  "#1c2325",
  "#14191b",
  "#0f1315",
  "#0a0d0e",
];

/** Buttons that are drawn by Mantine and say nothing by themselves, named in the language of the reader. */
export function namedTheme(close: string, clear: string) {
  const closes = { defaultProps: { closeButtonProps: { "aria-label": close } } };
  const clears = { defaultProps: { clearButtonProps: { "aria-label": clear } } };
  return mergeThemeOverrides(theme, {
    components: {
      Modal: closes,
      Drawer: closes,
      Notification: closes,
      Alert: { defaultProps: { closeButtonLabel: close } },
      Select: clears,
      MultiSelect: clears,
      TagsInput: clears,
    },
  });
}

export const theme = createTheme({
  colors: { teal, red, dark },
  primaryColor: "teal",
  primaryShade: { light: 7, dark: 6 },
  autoContrast: false,
  defaultRadius: "md",
  cursorType: "pointer",
  fontFamily:
    'system-ui, -apple-system, "Segoe UI", Roboto, "PingFang SC", "Hiragino Sans GB", "Microsoft YaHei", "Noto Sans CJK SC", "Noto Sans SC", sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace',
  headings: {
    fontWeight: "600",
    sizes: { h1: { fontSize: "1.5rem", lineHeight: "2rem" }, h2: { fontSize: "1rem", lineHeight: "1.5rem" } },
  },
  spacing: { xs: "0.5rem", sm: "0.75rem", md: "1rem", lg: "1.5rem", xl: "2rem" },
  components: {
    Paper: { defaultProps: { withBorder: true, shadow: "none" } },
    Modal: { defaultProps: { centered: true, shadow: "none" } },
    // Its choices stand in two lines where one has no room for them, so that none is cut off.
    SegmentedControl: { styles: { root: { flexWrap: "wrap", maxWidth: "100%" }, control: { flex: "1 0 auto" } } },
    Tooltip: { defaultProps: { openDelay: 300, withArrow: true } },
  },
});

function stateColours(scheme: "light" | "dark"): Record<string, string> {
  const named = STATES.flatMap((state) =>
    Object.entries(state[scheme]).map(([part, colour]) => [`--state-${state.name}-${part}`, colour]),
  );
  return Object.fromEntries(named);
}

/** States are painted through these variables only: `var(--state-RUNNING-solid)`, `-text`, `-tint`. */
export const cssVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    ...stateColours("light"),
    "--mantine-color-dimmed": "#57646a",
    "--mantine-color-error": "#b3202c",
    "--mantine-color-body": "#ffffff",
    "--horai-ground": "#f7f9f9",
    "--horai-line": "#e2e8e8",
    "--horai-bad": "#b3202c",
    "--horai-warn": "#8a4b00",
    "--horai-good": "#22672f",
    "--horai-trial": "#6f42b5",
  },
  dark: {
    ...stateColours("dark"),
    "--mantine-color-dimmed": "#98a4a7",
    "--mantine-color-error": "#f79aa2",
    "--mantine-color-body": "#14191b",
    "--horai-ground": "#0f1315",
    "--horai-line": "#2a3335",
    "--horai-bad": "#f79aa2",
    "--horai-warn": "#f2bd6d",
    "--horai-good": "#86d394",
    "--horai-trial": "#c4a7f5",
  },
});
