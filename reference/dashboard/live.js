// Keeps the numbers of the overview up to date. What comes is set as text, never as markup.
"use strict";
(() => {
  const shape = document.currentScript.dataset.shape;
  const state = document.getElementById("state");
  const cells = new Map();
  for (const cell of document.querySelectorAll("[data-k]")) cells.set(cell.dataset.k, cell);
  const say = (text, live) => {
    if (state.textContent !== text) state.textContent = text;
    state.classList.toggle("live", live);
  };
  const source = new EventSource("/stream");
  source.addEventListener("numbers", (event) => {
    const news = JSON.parse(event.data);
    if (news.shape !== shape) {
      source.close();
      location.reload();
      return;
    }
    for (const [key, [text, tone]] of Object.entries(news.cells)) {
      const cell = cells.get(key);
      if (!cell) continue;
      if (cell.textContent !== text) cell.textContent = text;
      if (cell.className !== tone) cell.className = tone;
    }
    say("live", true);
  });
  source.addEventListener("error", () => say("not connected; these numbers are old", false));
  addEventListener("pagehide", () => source.close());
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
})();
