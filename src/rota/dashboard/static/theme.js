// Light, dark, or as set in the system; remembered in this browser alone.
(() => {
  "use strict";
  const order = ["system", "light", "dark"];
  const root = document.documentElement;
  let theme = "system";
  try { theme = localStorage.getItem("rota-theme") || theme; } catch { /* storage is off: as the system has it */ }
  const show = () => {
    if (theme === "system") { delete root.dataset.theme; } else { root.dataset.theme = theme; }
  };
  show();
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const say = () => { button.textContent = `Theme: ${theme === "system" ? "auto" : theme}`; };
    say();
    button.title = "Light, dark, or as set in the system";
    button.hidden = false;
    button.addEventListener("click", () => {
      theme = order[(order.indexOf(theme) + 1) % order.length];
      try { localStorage.setItem("rota-theme", theme); } catch { /* not remembered */ }
      show();
      say();
    });
  });
})();
