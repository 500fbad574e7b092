// The part of a page that changes: pushed by the server where it can, else htmx asks every two seconds. Nothing
// changes under a reader: not in a hidden tab, not while text is selected, not around the focus.
(() => {
  "use strict";
  const part = document.getElementById("live");
  const note = document.getElementById("still");
  let stream = null;

  const still = () => {
    const selection = getSelection();
    const selecting = !selection.isCollapsed && part.contains(selection.anchorNode);
    return selecting || part.contains(document.activeElement) || part.querySelector("details:hover") !== null;
  };

  document.body.addEventListener("htmx:beforeRequest", (event) => {
    if (event.detail.elt === part && (document.hidden || stream !== null || still())) { event.preventDefault(); }
    note.hidden = !still();
  });

  // Without a connection the page stays as it is, and asks again.
  const listen = () => {
    if (!part.dataset.stream || document.hidden || stream !== null) { return; }
    stream = new EventSource(part.dataset.stream);
    stream.onmessage = (event) => {
      note.hidden = !still();
      if (!still()) { htmx.swap(part, event.data, { swapStyle: "innerHTML" }); }
    };
    stream.onerror = () => { if (stream.readyState === EventSource.CLOSED) { stream = null; } };
  };
  const hush = () => { if (stream !== null) { stream.close(); stream = null; } };

  document.addEventListener("visibilitychange", () => { if (document.hidden) { hush(); } else { listen(); } });
  addEventListener("pagehide", hush);
  listen();
})();
