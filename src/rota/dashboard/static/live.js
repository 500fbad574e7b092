// The part of a page that changes: pushed by the server where it can, else htmx asks every two seconds. Nothing
// changes under a reader: not in a hidden tab, not while text is selected, not around the focus.
(() => {
  "use strict";
  const part = document.getElementById("live");
  const note = document.getElementById("still");
  let stream = null;
  let news = null;

  const still = () => {
    const selection = getSelection();
    const selecting = !selection.isCollapsed && part.contains(selection.anchorNode);
    const active = document.activeElement;
    const focused = part.contains(active) && active.matches("a, button, input, select, summary, pre");
    note.hidden = !(selecting || focused);
    return selecting || focused;
  };

  document.body.addEventListener("htmx:beforeRequest", (event) => {
    if (event.detail.elt === part && (document.hidden || stream !== null || still())) { event.preventDefault(); }
  });

  // What came while the page was to stay as it is, is shown as soon as it may change.
  const show = () => {
    if (news === null || still()) { return; }
    htmx.swap(part, news, { swapStyle: "innerHTML" });
    news = null;
  };

  const listen = () => {
    if (!part.dataset.stream || document.hidden || stream !== null) { return; }
    stream = new EventSource(part.dataset.stream);
    stream.onmessage = (event) => { news = event.data; show(); };
    // Where the server refuses, htmx asks again.
    stream.onerror = () => { if (stream.readyState === EventSource.CLOSED) { stream = null; } };
  };
  const hush = () => { if (stream !== null) { stream.close(); stream = null; } };

  document.addEventListener("visibilitychange", () => { if (document.hidden) { hush(); } else { listen(); } });
  addEventListener("pagehide", hush);
  setInterval(show, 1000);
  listen();
})();
