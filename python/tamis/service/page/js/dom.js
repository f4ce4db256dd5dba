// Elements, made of what they are and what they hold. Text is always text: nothing is parsed as markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element. Attributes: `onclick` and its kin are listeners, `class` and others what they say. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An element of a drawing. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Have an element hold these children, and no others. */
export function hold(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter(isThere));
  return element;
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (isThere(value)) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter(isThere));
  return element;
}

const isThere = (value) => value !== null && value !== undefined && value !== false;

let numbered = 0;

/** An id that no other element has. */
export const newId = (what) => `${what}-${++numbered}`;

/** Calls that come in quick succession become one, when they have stopped for a moment. */
export function debounced(milliseconds, action) {
  let timer;
  const later = (...given) => {
    clearTimeout(timer);
    timer = setTimeout(action, milliseconds, ...given);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}
