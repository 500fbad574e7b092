// The jobs that are selected in a table: how many, all at once, and with Shift all between two.
(() => {
  "use strict";
  const form = document.getElementById("many");
  const all = document.getElementById("all");
  const said = document.getElementById("selected");
  const boxes = [...form.querySelectorAll("input[name^='job-']")];
  const buttons = form.querySelectorAll(".selected button");
  let last = null;

  const show = () => {
    const count = boxes.filter((box) => box.checked).length;
    said.textContent = count === 0 ? "No job selected" : `${count} job${count === 1 ? "" : "s"} selected:`;
    buttons.forEach((button) => { button.disabled = count === 0; });
    all.checked = count === boxes.length;
    all.indeterminate = count > 0 && count < boxes.length;
  };

  all.hidden = false;
  all.addEventListener("change", () => { boxes.forEach((box) => { box.checked = all.checked; }); show(); });
  form.addEventListener("click", (event) => {
    const at = boxes.indexOf(event.target);
    if (at < 0) { return; }
    if (event.shiftKey && last !== null) {
      boxes.slice(Math.min(at, last), Math.max(at, last)).forEach((box) => { box.checked = event.target.checked; });
    }
    last = at;
    show();
  });
  // A browser that comes back to this page keeps what was selected.
  addEventListener("pageshow", show);
  show();
})();
