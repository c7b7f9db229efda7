// The body of a function: returns what is wrong with how the text of a page lies there, as a list of sentences.
const found = []
const all = root => [...root.querySelectorAll("*")].flatMap(e => [e, ...(e.shadowRoot ? all(e.shadowRoot) : [])])
const elements = all(document).filter(e => !["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE"].includes(e.tagName))
const parent = e => e.assignedSlot ?? e.parentElement ?? e.getRootNode().host
const shown = e => e.checkVisibility({opacityProperty: true, visibilityProperty: true})
const above = function* (e) { for (; e; e = parent(e)) yield e }

// What can be seen of a box: less what containers cut off or scroll away.
const clipped = (box, element) => {
  let {left, right, top, bottom} = box
  for (const e of above(element)) {
    const style = getComputedStyle(e)
    if (e === document.documentElement || e === document.body || style.overflow === "visible") continue
    const edge = e.getBoundingClientRect()
    left = Math.max(left, edge.left); right = Math.min(right, edge.right)
    top = Math.max(top, edge.top); bottom = Math.min(bottom, edge.bottom)
  }
  return right - left > 1 && bottom - top > 1 ? {left, right, top, bottom} : null
}
const floats = e => [...above(e)].some(one => ["fixed", "sticky"].includes(getComputedStyle(one).position))

const texts = []
for (const element of elements) {
  if (!shown(element) || floats(element)) continue
  for (const node of element.childNodes) {
    if (node.nodeType !== Node.TEXT_NODE || !node.data.trim()) continue
    const range = document.createRange()
    range.selectNodeContents(node)
    for (const line of range.getClientRects()) {
      const box = clipped(line, element)
      if (box) texts.push({text: node.data.trim(), box, from: node})
    }
  }
}

const channels = colour => (colour.match(/[\d.]+/g) ?? []).map(Number)
const luminance = ([red, green, blue]) => [red, green, blue].reduce((sum, value, i) => {
  const part = value / 255
  return sum + [0.2126, 0.7152, 0.0722][i] * (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
}, 0)
const paper = element => {
  for (const e of above(element)) {
    const colour = channels(getComputedStyle(e).backgroundColor)
    if (colour.length === 3 || colour[3] > 0) return colour
  }
  return [255, 255, 255]
}
const rgb = style => style.startsWith("#") ? [1, 3, 5].map(at => parseInt(style.slice(at, at + 2), 16)) : channels(style)
for (const [canvas, written] of window.canvasText) {
  if (!canvas.isConnected || !shown(canvas)) continue
  const edge = canvas.getBoundingClientRect()
  const behind = luminance(paper(canvas))
  for (const {text, box, colour} of written) {
    const ink = luminance(rgb(colour))
    const contrast = (Math.max(ink, behind) + 0.05) / (Math.min(ink, behind) + 0.05)
    if (contrast < 4.5) found.push(`contrast of ${contrast.toFixed(2)} in a plot: ${text}`)
    if (box.left < -1 || box.right > edge.width + 1 || box.top < -1 || box.bottom > edge.height + 1)
      found.push(`cut off by the edge of its plot: ${text}`)
    const there = {left: box.left + edge.left, right: box.right + edge.left, top: box.top + edge.top, bottom: box.bottom + edge.top}
    texts.push({text, box: there, from: box})
  }
}

texts.sort((a, b) => a.box.top - b.box.top)
texts.forEach((one, i) => {
  for (let j = i + 1; j < texts.length && texts[j].box.top < one.box.bottom; j++) {
    const other = texts[j]
    if (one.from === other.from) continue
    const across = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left)
    const down = Math.min(one.box.bottom, other.box.bottom) - Math.max(one.box.top, other.box.top)
    const low = Math.min(one.box.bottom - one.box.top, other.box.bottom - other.box.top)
    if (across > 2 && down > 0.3 * low) found.push(`overlap: ${one.text} / ${other.text}`)
  }
})

const wide = document.documentElement.scrollWidth
if (wide > innerWidth + 1) {
  const far = elements.filter(e => shown(e) && e.getBoundingClientRect().right > innerWidth + 1)
  found.push(`wider than the screen: ${wide} of ${innerWidth} pixels, by ${far.slice(-1).map(e => e.tagName + "." + e.className)}`)
}
const printed = matchMedia("print").matches
for (const element of elements) {
  if (!shown(element) || element.clientWidth === 0 || element.scrollWidth <= element.clientWidth + 6) continue // 5: the handle of a column
  const style = getComputedStyle(element)
  const cut = ["hidden", "clip"].includes(style.overflowX) || printed && ["auto", "scroll"].includes(style.overflowX)
  const away = element.getBoundingClientRect().right <= 0 // a drawer that is shut
  const scrolled = element.classList.contains("slick-header") // moves with the table below it
  if (cut && !away && !scrolled && element.innerText?.trim())
    found.push(`cut off at ${element.clientWidth} of ${element.scrollWidth} pixels: ${element.tagName}.${element.className} ${element.innerText.trim().slice(0, 40)}`)
}
return [...new Set(found)]
