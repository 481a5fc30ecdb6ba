// Everybody: where each of so many shapes stands, when it began, and what it looks like.

import {
  BufferAttribute,
  Color,
  OctahedronGeometry,
  PerspectiveCamera,
} from "three/webgpu";

export class Crowd {
  constructor(count) {
    this.count = count;
    this.columns = Math.ceil(Math.sqrt(count * 2));
    this.rows = Math.ceil(count / this.columns);
    this.camera = new PerspectiveCamera(45, 2, 1, 1000);
    this.phases = Float32Array.from({ length: count }, (_, i) => {
      const [x, y] = this.placeOf(i);
      return Math.hypot(x, 2 * y) / 16;
    });
    this.times = new Float32Array(count);
  }

  /** The middle of a shape's place. */
  placeOf(i) {
    return [
      (i % this.columns) - (this.columns - 1) / 2,
      Math.floor(i / this.columns) - (this.rows - 1) / 2,
    ];
  }

  /** Everybody's own time. */
  timesAt(seconds) {
    const { times, phases } = this;
    for (let i = 0; i < times.length; i++) times[i] = seconds + phases[i];
    return times;
  }

  geometry() {
    const geometry = new OctahedronGeometry(0.55);
    const { count } = geometry.attributes.position;
    const colors = new Float32Array(3 * count);
    const color = new Color();
    for (let corner = 0; corner < count; corner++) {
      const face = Math.floor(corner / 3);
      color.setHSL(0.45 + face / 24, 0.7, 0.25 + face / 20);
      color.toArray(colors, 3 * corner);
    }
    return geometry.setAttribute("color", new BufferAttribute(colors, 3));
  }

  /** Sizes the canvas, and moves the camera so that everybody is seen. */
  fit(renderer, { clientWidth: width, clientHeight: height }) {
    const size = `${width} ${height}`;
    if (this.size === size) return;
    this.size = size;
    const { camera } = this;
    renderer.setSize(width, height, false);
    camera.aspect = width / height;
    const half = Math.tan((camera.fov * Math.PI) / 360);
    const far = Math.max(this.rows, this.columns / camera.aspect) / (2 * half);
    camera.position.set(0, -0.25 * far, far);
    camera.lookAt(0, 0, 0);
    camera.updateProjectionMatrix();
  }
}
