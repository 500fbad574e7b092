// Charts of what the table below them says: drawn from its rows, and asked for again once a minute. Times are UTC, as there.
(() => {
  "use strict";
  const MINUTE = 60;
  const plots = new Set();
  const large = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
  const small = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });
  const jobs = (number) => (number < 10 ? small.format(number) : large.format(Math.round(number)));
  const two = (number) => String(number).padStart(2, "0");

  const age = (seconds) => {
    for (const [length, unit] of [[86400, "d"], [3600, "h"], [60, "m"]]) {
      if (seconds >= length) { return `${+(seconds / length).toFixed(1)}${unit}`; }
    }
    return `${Math.round(seconds)}s`;
  };
  const clock = (at, days) => {
    const date = new Date(at * 1000);
    const day = `${two(date.getUTCMonth() + 1)}-${two(date.getUTCDate())}`;
    return days ? day : `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}`;
  };
  const colour = (element) => getComputedStyle(element).color;

  // The columns of the table from left to right in time, with nothing where there is no row.
  const read = (section) => {
    const step = Number(section.dataset.step);
    const rows = [...section.querySelectorAll("tbody tr")].reverse();
    const names = ["appended", "completed", "discarded", "available", "oldest"];
    const known = new Map(rows.map((row) => [Number(row.dataset.at), [...row.querySelectorAll("td")].map(
      (cell) => (cell.dataset.is === "" ? null : Number(cell.dataset.is)))]));
    const last = Math.floor((Date.now() / 1000 - MINUTE) / step) * step;
    const length = { hour: 3600, day: 86400, week: 7 * 86400 }[section.dataset.span];
    const end = Math.max(last, ...known.keys());
    const times = [];
    for (let at = end - length + step; at <= end; at += step) { times.push(at); }
    const columns = names.map((_, column) => times.map((at) => known.get(at)?.[column] ?? null));
    return { times, columns: Object.fromEntries(names.map((name, at) => [name, columns[at]])), few: known.size < 3 };
  };

  const draw = (section, figure, data) => {
    const names = figure.dataset.lines.split(" ");
    const place = figure.querySelector(".plot");
    const worded = names[0] === "oldest" ? age : jobs;
    const say = (plot) => {
      const at = plot.cursor.idx ?? plot.data[1].findLastIndex((value) => value !== null && value !== undefined);
      names.forEach((name, line) => {
        const value = plot.data[line + 1][at] ?? null;
        figure.querySelector(`[data-of=${name}]`).textContent = value === null ? "–" : worded(value);
      });
    };
    const probe = document.createElement("span");
    place.replaceChildren(probe);
    probe.className = "grid";
    const grid = { stroke: colour(probe), width: 1 };
    probe.className = "words";
    const words = { stroke: colour(probe), font: "11px system-ui, sans-serif", grid, ticks: { show: false } };
    const font = words.font;
    probe.remove();
    const days = section.dataset.span === "week";
    const options = {
      width: place.clientWidth, height: place.clientHeight, legend: { show: false }, padding: [8, 18, 0, 0],
      cursor: { drag: { x: false, y: false }, sync: { key: "rota" }, points: { size: 6 } },
      scales: { x: { time: true }, y: { range: (_, low, high) => [0, Math.max(high, names[0] === "oldest" ? 5 : 1) * 1.08] } },
      axes: [
        { ...words, font, size: 22, space: 60, values: (_, splits) => splits.map((at) => clock(at, days)),
          incrs: [300, 600, 900, 1800, 3600, 2 * 3600, 4 * 3600, 6 * 3600, 12 * 3600, 86400, 2 * 86400] },
        { ...words, font, size: 44, space: 34, values: (_, splits) => splits.map(worded),
          incrs: names[0] === "oldest"
            ? [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 2 * 86400, 5 * 86400]
            : [.1, .2, .5, ...Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat()] },
      ],
      series: [{}, ...names.map((name) => {
        const stroke = colour(figure.querySelector(`.key.${name}`));
        const fill = names.length === 1 ? stroke.replace("rgb(", "rgba(").replace(")", ", .12)") : undefined;
        return { stroke, fill, width: 1.5, points: { show: data.few, size: 4 } };
      })],
      tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
      hooks: { setCursor: [say], ready: [say] },
    };
    const plot = new uPlot(options, [data.times, ...names.map((name) => data.columns[name])], place);
    plot.over.setAttribute("aria-hidden", "true");
    plots.add({ plot, place });
  };

  const show = () => {
    for (const { plot } of plots) { plot.destroy(); }
    plots.clear();
    for (const section of document.querySelectorAll(".charts")) {
      if (!section.querySelector("tbody")) { continue; }
      const data = read(section);
      for (const figure of section.querySelectorAll("figure")) { draw(section, figure, data); }
    }
  };

  // The page of the history has the same section: its rows and its words take the places of those here.
  const renew = async (section, source) => {
    const answer = await fetch(source, { headers: { accept: "text/html" } });
    if (!answer.ok) { return; }
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector(".charts");
    if (fresh === null) { return; }
    section.dataset.source = source;
    section.dataset.step = fresh.dataset.step;
    section.dataset.span = fresh.dataset.span;
    for (const link of section.querySelectorAll(".spans a")) {
      if (link.dataset.span === fresh.dataset.span) { link.setAttribute("aria-current", "true"); } else { link.removeAttribute("aria-current"); }
    }
    if (section.querySelector("tbody") && fresh.querySelector("tbody")) {
      section.querySelector("tbody").replaceWith(fresh.querySelector("tbody"));
      const most = fresh.querySelectorAll(".most");
      section.querySelectorAll(".most").forEach((words, at) => { words.textContent = most[at].textContent; });
    } else {
      section.querySelectorAll(":scope > :not(.chart-head)").forEach((part) => part.remove());
      section.append(...fresh.querySelectorAll(":scope > :not(.chart-head)"));
    }
    show();
  };

  for (const section of document.querySelectorAll(".charts")) {
    section.addEventListener("click", (event) => {
      const link = event.target.closest(".spans a");
      if (link === null || event.ctrlKey || event.metaKey || event.shiftKey) { return; }
      event.preventDefault();
      renew(section, link.dataset.source).catch(() => { location.assign(link.href); });
    });
    setInterval(() => {
      // Where the server is gone for a while, the next minute asks again.
      if (!document.hidden) { renew(section, section.dataset.source).catch(() => undefined); }
    }, MINUTE * 1000);
  }
  new ResizeObserver(() => {
    for (const { plot, place } of plots) {
      if (place.clientWidth !== plot.width) { plot.setSize({ width: place.clientWidth, height: place.clientHeight }); }
    }
  }).observe(document.body);
  new MutationObserver(show).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  show();
})();
