// Before anything is painted: the chosen scheme, so that a dark page never flashes white.
(function () {
  var chosen = "auto";
  try {
    chosen = localStorage.getItem("horai-scheme") || "auto";
  } catch {
    // Storage may be forbidden; then the system's scheme holds.
  }
  var dark = chosen === "dark" || (chosen === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.setAttribute("data-mantine-color-scheme", dark ? "dark" : "light");
})();
