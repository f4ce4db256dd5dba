// Create elements. Text is always inserted as text, never parsed as markup.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element. Attributes that are functions, such as `onclick`, become listeners. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Replace the children of an element. */
export function hold(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter(isPresent));
  return element;
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (isPresent(value)) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter(isPresent));
  return element;
}

const isPresent = (value) => value !== null && value !== undefined && value !== false;

let lastId = 0;

/** A unique id. */
export const newId = (what) => `${what}-${++lastId}`;

/** Debounce: call `action` once the calls have stopped for a moment. */
export function debounced(milliseconds, action) {
  let timer;
  const later = (...given) => {
    clearTimeout(timer);
    timer = setTimeout(action, milliseconds, ...given);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}
