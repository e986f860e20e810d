// Wide tables, and tables that a terminal drew, scroll sideways; they can be reached with the keyboard.
// A picture opens in its own size, which a phone needs.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  for (const text of document.querySelectorAll("article pre"))
    text.classList.toggle("drawn", /[┌┏╭]/.test(text.textContent));
  const scrolls = () => {
    const wide = "pre.drawn, .table-wrapper, .cell_output .output";
    for (const box of document.querySelector("article").querySelectorAll(wide))
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
  };
  for (const image of document.querySelectorAll("article img")) {
    const link = document.createElement("a");
    link.href = image.src;
    image.replaceWith(link);
    link.append(image);
  }
  scrolls();
  window.addEventListener("resize", scrolls);
  for (const caption of document.querySelectorAll('[role="heading"]:not([aria-level])'))
    caption.setAttribute("aria-level", "2");
});
