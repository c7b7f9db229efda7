// Runs before a page's own scripts: keeps what is written on canvases, as plots write their text there, where a page's
// elements do not show it. window.canvasText maps a canvas to [{text, box, colour}], boxes in CSS pixels of the canvas.
window.canvasText = new Map()
const context = CanvasRenderingContext2D.prototype
const written = canvas => {
  if (!window.canvasText.has(canvas)) window.canvasText.set(canvas, [])
  return window.canvasText.get(canvas)
}
const {fillText, clearRect} = context
context.clearRect = function (x, y, width, height) {
  const matrix = this.getTransform()
  if (width * matrix.a >= this.canvas.width && height * matrix.d >= this.canvas.height) window.canvasText.delete(this.canvas)
  return clearRect.call(this, x, y, width, height)
}
context.fillText = function (text, x, y, ...more) {
  if (text.trim() && this.globalAlpha > 0) {
    const size = this.measureText(text)
    const ratio = this.canvas.width / (this.canvas.clientWidth || this.canvas.width)
    const corners = [-size.actualBoundingBoxLeft, size.actualBoundingBoxRight].flatMap(across =>
      [-size.actualBoundingBoxAscent, size.actualBoundingBoxDescent].map(down =>
        this.getTransform().transformPoint(new DOMPoint(x + across, y + down))))
    const [xs, ys] = [corners.map(p => p.x / ratio), corners.map(p => p.y / ratio)]
    const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)]
    written(this.canvas).push({text, box: {left, right, top, bottom}, colour: this.fillStyle})
  }
  return fillText.call(this, text, x, y, ...more)
}
