// The part of a page that changes: pushed by the server where it can, else htmx asks every two seconds. What is there is
// changed into what is new, so that the focus, opened details and how far something is scrolled stay. Nothing changes in
// a hidden tab, nor while text is selected or a field is typed into.
(() => {
  "use strict";
  const SPEAK_EVERY = 15_000, LOST_AFTER = 5_000;
  const part = document.getElementById("live");
  const note = document.getElementById("still");
  const alarm = document.getElementById("lost");
  const voice = document.getElementById("voice");
  let stream = null;
  let news = null;
  let lost = 0;

  const still = () => {
    const selection = getSelection();
    const selecting = !selection.isCollapsed && selection.getRangeAt(0).intersectsNode(part);
    const active = document.activeElement;
    return selecting || (part.contains(active) && active.matches("input, select, textarea"));
  };

  // What came while the page was to stay as it is, is shown as soon as it may change.
  const show = () => {
    note.hidden = !still();
    alarm.hidden = lost === 0 || Date.now() - lost < LOST_AFTER;
    if (news !== null && !document.hidden && !still()) {
      const focused = document.activeElement;
      Idiomorph.morph(part, news, { morphStyle: "innerHTML", callbacks: {
        // Whether details are open is the reader's.
        beforeAttributeUpdated: (name, element) => !(name === "open" && element.matches("details")),
      } });
      news = null;
      if (focused.isConnected && focused !== document.activeElement) { focused.focus({ preventScroll: true }); }
    }
    speak();
  };

  // Screen readers hear a sentence now and then, not each figure that changes.
  const words = () => part.querySelector("[data-said]")?.dataset.said ?? "";
  let spoken = words();
  let spokenAt = 0;
  const speak = () => {
    if (words() === spoken || Date.now() - spokenAt < SPEAK_EVERY) { return; }
    spoken = voice.textContent = words();
    spokenAt = Date.now();
  };

  const came = (text) => { lost = 0; news = text; show(); };
  const failed = () => { lost = lost || Date.now(); };

  const listen = () => {
    if (!part.dataset.stream || document.hidden || stream !== null) { return; }
    stream = new EventSource(part.dataset.stream);
    stream.onmessage = (event) => { came(event.data); };
    stream.onopen = () => { lost = 0; };
    // Where the server refuses, htmx asks again.
    stream.onerror = () => { failed(); if (stream.readyState === EventSource.CLOSED) { stream = null; } };
  };
  const hush = () => { if (stream !== null) { stream.close(); stream = null; } };

  part.addEventListener("htmx:beforeRequest", (event) => {
    if (event.detail.elt === part && (document.hidden || stream !== null || still())) { event.preventDefault(); }
  });
  part.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.target !== part) { return; }
    event.detail.shouldSwap = false;
    if (!event.detail.isError) { came(event.detail.serverResponse); }
  });
  part.addEventListener("htmx:sendError", failed);
  part.addEventListener("htmx:responseError", failed);

  document.addEventListener("visibilitychange", () => { if (document.hidden) { hush(); } else { lost = 0; listen(); } });
  addEventListener("pagehide", hush);
  addEventListener("pageshow", listen);
  setInterval(show, 1000);
})();
