// Rules that every view of the page must keep; returns the violations.
() => {
  const wrong = [];
  const describe = (element) => element.outerHTML.slice(0, 120);
  const isSeen = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true });

  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) wrong.push(`${root.scrollWidth - root.clientWidth} pixels too wide`);
  if (!root.lang) wrong.push("no language");
  for (const tag of ["h1", "main"]) {
    const count = document.querySelectorAll(tag).length;
    if (count !== 1) wrong.push(`${count} × ${tag}`);
  }
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  for (const id of new Set(ids)) if (ids.indexOf(id) !== ids.lastIndexOf(id)) wrong.push(`the id ${id} twice`);

  // Every control has a name, and is large enough to be hit.
  for (const element of document.querySelectorAll("a, button, input, select, textarea, summary")) {
    if (!isSeen(element)) continue;
    const labels = [...(element.labels ?? [])].map((label) => label.textContent).join("");
    const name = element.getAttribute("aria-label") || labels || (element.labels ? "" : element.textContent) || (element.matches("button") && element.textContent);
    if (!name || !name.trim()) wrong.push(`no name: ${describe(element)}`);
    const { width, height } = element.getBoundingClientRect();
    if (!element.matches("p a, .skip, details summary") && (width < 24 || height < 24)) wrong.push(`too small: ${describe(element)}`);
  }

  // Contrast of text: 4.5, or 3 where it is large.
  const rgba = (text) => {
    const numbers = text.match(/-?[\d.]+/g).map(Number);
    const scale = text.startsWith("color(") ? 255 : 1;
    return [numbers[0] * scale, numbers[1] * scale, numbers[2] * scale, numbers[3] ?? 1];
  };
  const over = ([r, g, b, a], [r2, g2, b2]) => [r * a + r2 * (1 - a), g * a + g2 * (1 - a), b * a + b2 * (1 - a), 1];
  const light = (colour) => {
    const [r, g, b] = colour.map((value) => {
      const share = value / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    const layers = [];
    for (let one = element; one; one = one.parentElement) layers.push(rgba(getComputedStyle(one).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || !isSeen(element) || element.closest(":disabled, noscript, option, svg, .skip")) continue;
    const style = getComputedStyle(element);
    const size = parseFloat(style.fontSize);
    if (size === 0) continue;
    const below = ground(element);
    const [lighter, darker] = [light(over(rgba(style.color), below)), light(below)].sort((a, b) => b - a);
    const ratio = (lighter + 0.05) / (darker + 0.05);
    const isLarge = size >= 24 || (size >= 18.6 && style.fontWeight >= 700);
    if (ratio < (isLarge ? 3 : 4.5)) wrong.push(`contrast ${ratio.toFixed(2)}: ${node.textContent.trim().slice(0, 40)}: ${describe(element)}`);
  }
  return wrong;
}
