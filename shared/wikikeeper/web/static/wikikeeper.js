// The one script of these pages; without it everything works, a click at a time. It gives each threshold a slider
// that moves its line in the histograms while it is dragged. What would flip is asked of the server, with "Try".
"use strict";

for (const field of document.querySelectorAll("input[data-moves]")) {
  const slider = document.createElement("input");
  slider.type = "range";
  slider.min = "0";
  slider.max = "1";
  slider.step = "0.01";
  slider.value = field.value;
  slider.setAttribute("aria-label", field.dataset.moves + " threshold");
  const lines = document.querySelectorAll('line[data-line="' + field.dataset.moves + '"]');

  const move = (value) => {
    if (!(value >= 0 && value <= 1)) return;
    for (const line of lines) {
      line.setAttribute("x1", value * 100);
      line.setAttribute("x2", value * 100);
    }
  };
  slider.addEventListener("input", () => {
    field.value = slider.value;
    move(slider.valueAsNumber);
  });
  field.addEventListener("input", () => {
    slider.value = field.value;
    move(field.valueAsNumber);
  });
  field.closest(".threshold").append(slider);
}
