// The two ways of posing: by a clip on the GPU, and by AnimationMixer.

import { fromThree } from "framebatch/animation";
import {
  AnimationMixer,
  InstancedMesh,
  Matrix4,
  Mesh,
  MeshBasicNodeMaterial,
  Object3D,
  Scene,
  StorageBufferAttribute,
} from "three/webgpu";
import {
  cross,
  float,
  Fn,
  instanceIndex,
  positionLocal,
  storage,
  vec3,
  vertexColor,
} from "three/tsl";
import { NAME } from "./clips.js";

/** Floats of a pose: position, quaternion, scale. */
const ROW = 10;

/** No value comes back: one dispatch, and one copy into the renderer's buffer. */
export async function byFramebatch({ gpu, clip: made, crowd, renderer }) {
  const { count } = crowd;
  const clip = gpu.clip(fromThree(made));
  const poses = gpu.tensor(new Float32Array(count * ROW));
  const attribute = new StorageBufferAttribute(count * ROW, 1);
  const mesh = new Mesh(crowd.geometry(), material(attribute, crowd));
  mesh.count = count;
  mesh.frustumCulled = false;
  const scene = new Scene().add(mesh);
  // Usually made as it is first drawn; here the copy comes before.
  renderer.backend.createStorageAttribute(attribute);
  const times = crowd.timesAt(0);
  await gpu.warmup(() => clip.sampleTo(poses, times, { wrap: "loop" }));
  const drawn = renderer.backend.get(attribute).buffer;
  return {
    scene,
    pose(seconds) {
      const times = crowd.timesAt(seconds);
      void clip.sampleTo(poses, times, { wrap: "loop" });
      gpu.flush();
      const { buffer, offset, size } = poses.gpuBuffer();
      const encoder = gpu.device.createCommandEncoder();
      encoder.copyBufferToBuffer(buffer, offset, drawn, 0, size);
      gpu.device.queue.submit([encoder.finish()]);
    },
  };
}

/** Poses its instances by rows of the attribute. */
function material(attribute, { count, columns, rows }) {
  const poses = storage(attribute, "float", count * ROW).toReadOnly();
  const material = new MeshBasicNodeMaterial();
  material.positionNode = Fn(() => {
    const at = instanceIndex.mul(ROW).toVar();
    const three = (from) =>
      vec3(...[0, 1, 2].map((k) => poses.element(at.add(from + k))));
    const axis = three(3).toVar();
    const turned = three(7).mul(positionLocal).toVar();
    const inner = cross(axis, turned).add(turned.mul(poses.element(at.add(6))));
    const column = float(instanceIndex.mod(columns)).sub((columns - 1) / 2);
    const row = float(instanceIndex.div(columns)).sub((rows - 1) / 2);
    return turned
      .add(cross(axis, inner).mul(2))
      .add(three(0))
      .add(vec3(column, row, 0));
  })();
  material.colorNode = vertexColor();
  return material;
}

/** On the page's thread: an action for each object, then a matrix for each instance. */
export function byMixer({ clip, crowd }) {
  const { count, phases } = crowd;
  const material = new MeshBasicNodeMaterial();
  material.colorNode = vertexColor();
  const mesh = new InstancedMesh(crowd.geometry(), material, count);
  mesh.frustumCulled = false;
  const mixer = new AnimationMixer(new Object3D());
  const members = Array.from({ length: count }, (_, i) => {
    const object = new Object3D();
    object.name = NAME;
    const action = mixer.clipAction(clip, object).play();
    return { object, action, place: crowd.placeOf(i) };
  });
  const matrix = new Matrix4();
  return {
    scene: new Scene().add(mesh),
    pose(seconds) {
      members.forEach(({ action }, i) => {
        action.time = (seconds + phases[i]) % clip.duration;
      });
      mixer.update(0);
      members.forEach(({ object, place: [x, y] }, i) => {
        const { position, quaternion, scale } = object;
        matrix.compose(position, quaternion, scale);
        matrix.elements[12] += x;
        matrix.elements[13] += y;
        mesh.setMatrixAt(i, matrix);
      });
      mesh.instanceMatrix.needsUpdate = true;
    },
  };
}
