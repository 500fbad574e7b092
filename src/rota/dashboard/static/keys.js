// Single keys. What has the attribute `data-key` is clicked by that key, or gets the focus if it is a field. They are
// not heard while someone types, and can be switched off; that is remembered in this browser alone.
(() => {
  "use strict";
  const FIELD = "input:not([type=checkbox]), select, textarea";
  const help = document.getElementById("keys");
  const opener = document.getElementById("keys-open");
  const wanted = document.getElementById("keys-wanted");
  try { wanted.checked = localStorage.getItem("rota-keys") !== "off"; } catch { /* storage is off: they are on */ }

  const marked = (key) => [...document.querySelectorAll("[data-key]")].find((element) => element.dataset.key === key);

  const tell = () => {
    for (const element of document.querySelectorAll("[data-key]")) {
      if (wanted.checked) { element.setAttribute("aria-keyshortcuts", element.dataset.key); }
      else { element.removeAttribute("aria-keyshortcuts"); }
    }
  };

  const press = (key) => {
    if (key === "r") { location.reload(); return true; }
    const element = marked(key);
    if (element === undefined) { return false; }
    if (element.matches(FIELD)) { element.focus(); element.select?.(); } else { element.click(); }
    return true;
  };

  opener.hidden = false;
  opener.addEventListener("click", () => { help.showModal(); });
  wanted.addEventListener("change", () => {
    try { localStorage.setItem("rota-keys", wanted.checked ? "on" : "off"); } catch { /* not remembered */ }
    tell();
  });
  document.addEventListener("keydown", (event) => {
    if (!wanted.checked || help.open || event.defaultPrevented) { return; }
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest(FIELD)) { return; }
    if (press(event.key)) { event.preventDefault(); }
  });
  tell();
})();
