// Where a picture goes: to the canvas by WebGPU, or through a 2D canvas.
//
// Some browsers lose the GPU when WebGPU presents a canvas on a software adapter. There the
// picture is rendered to a texture, read back and put on a 2D canvas.

export interface Screen {
  readonly format: GPUTextureFormat;
  /** The texture of the next picture. */
  target(): GPUTexture;
  /** Shows what was rendered to the target, once it was submitted. */
  present(): Promise<void>;
}

/** How pictures reach the canvas. */
export type ScreenKind = "webgpu" | "2d";

export function openScreen(
  canvas: HTMLCanvasElement,
  device: GPUDevice,
  kind: ScreenKind,
): Screen {
  return kind === "webgpu"
    ? openCanvas(canvas, device)
    : openPicture(canvas, device);
}

function openCanvas(canvas: HTMLCanvasElement, device: GPUDevice): Screen {
  const context = canvas.getContext("webgpu");
  if (context === null) throw new Error("the canvas has no WebGPU");
  const format = navigator.gpu.getPreferredCanvasFormat();
  return {
    format,
    target() {
      // Several devices take turns on the canvas.
      if (context.getConfiguration()?.device !== device) {
        context.configure({ device, format });
      }
      return context.getCurrentTexture();
    },
    present: () => Promise.resolve(),
  };
}

/** Bytes to which a copied row of a texture is aligned. */
const ALIGNMENT = 256;

function openPicture(canvas: HTMLCanvasElement, device: GPUDevice): Screen {
  const context = canvas.getContext("2d")!;
  const { width, height } = canvas;
  const format = "rgba8unorm";
  const texture = device.createTexture({
    size: [width, height],
    format,
    usage: GPUTextureUsage.RENDER_ATTACHMENT | GPUTextureUsage.COPY_SRC,
  });
  const bytesPerRow = Math.ceil((width * 4) / ALIGNMENT) * ALIGNMENT;
  const buffer = device.createBuffer({
    size: bytesPerRow * height,
    usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST,
  });
  return {
    format,
    target: () => texture,
    async present() {
      const encoder = device.createCommandEncoder();
      encoder.copyTextureToBuffer({ texture }, { buffer, bytesPerRow }, [
        width,
        height,
      ]);
      device.queue.submit([encoder.finish()]);
      await buffer.mapAsync(GPUMapMode.READ);
      const rows = new Uint8Array(buffer.getMappedRange());
      const image = context.createImageData(width, height);
      for (let row = 0; row < height; row++) {
        const from = row * bytesPerRow;
        image.data.set(rows.subarray(from, from + 4 * width), 4 * width * row);
      }
      buffer.unmap();
      context.putImageData(image, 0, 0);
    },
  };
}
