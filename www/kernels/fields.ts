// The fields for inputs and params: one for each that the code has, which keeps what was
// entered while the code changes around it.

import type { NumberType } from "framebatch/kernels";
import { signatureOf } from "./signature.ts";
import { NUMBER_TYPES, type Param, type Sketch } from "./sketch.ts";

/** What an input is filled with until somebody says something else. */
const USUAL = "x";

export class Fields {
  private inputs: Record<string, string> = {};
  private params: Record<string, Param> = {};
  /** What the code takes now. */
  private inputNames: readonly string[] = [];
  private paramNames: readonly string[] = [];

  /** `lookedAt` takes the names of what `at` looks at, which stand nowhere in the code. */
  constructor(
    private readonly into: {
      readonly inputs: HTMLElement;
      readonly params: HTMLElement;
      readonly lookedAt: HTMLInputElement;
    },
  ) {}

  /** Shows what a sketch has. */
  fill({ inputs, params, code }: Sketch): void {
    this.inputs = { ...inputs };
    this.params = { ...params };
    this.into.lookedAt.value = Object.keys(inputs).join(", ");
    this.follow(code, true);
  }

  /** Shows what the code has. */
  follow(code: string, isNew = false): void {
    const { form, inputs, params } = signatureOf(code);
    this.into.lookedAt.closest("label")!.hidden = form !== "at";
    const typed = this.into.lookedAt.value.match(/\w+/g) ?? [];
    const names = form === "at" ? typed : Object.keys(inputs);
    if (isNew || names.join() !== this.inputNames.join()) {
      this.inputNames = names;
      this.into.inputs.replaceChildren(
        ...names.map((name) => this.input(name)),
      );
    }
    if (isNew || params.join() !== this.paramNames.join()) {
      this.paramNames = params;
      this.into.params.replaceChildren(
        ...params.map((name) => this.param(name)),
      );
      this.into.params.parentElement!.hidden = params.length === 0;
    }
  }

  /** What was entered for what the code has. */
  read(): Pick<Sketch, "inputs" | "params"> {
    const own = <Value>(names: readonly string[], of: Record<string, Value>) =>
      Object.fromEntries(names.map((name) => [name, of[name]]));
    return {
      inputs: own(this.inputNames, this.inputs),
      params: own(this.paramNames, this.params),
    };
  }

  private input(name: string): HTMLElement {
    this.inputs[name] ??= USUAL;
    const field = document.createElement("input");
    field.value = this.inputs[name];
    field.spellcheck = false;
    field.autocapitalize = "off";
    field.className = "code";
    field.addEventListener("input", () => (this.inputs[name] = field.value));
    return labeled(name, field);
  }

  private param(name: string): HTMLElement {
    this.params[name] ??= { type: "f32", value: 1 };
    const { type, value } = this.params[name];
    const number = document.createElement("input");
    number.type = "number";
    number.step = "any";
    number.required = true;
    number.value = String(value);
    const types = document.createElement("select");
    types.append(...NUMBER_TYPES.map((own) => new Option(own, own)));
    types.value = type;
    types.setAttribute("aria-label", `type of ${name}`);
    const changed = () => {
      this.params[name] = {
        type: types.value as NumberType,
        // An address holds no NaN, which is what an empty field has.
        value: number.valueAsNumber || 0,
      };
    };
    for (const field of [number, types])
      field.addEventListener("input", changed);
    const row = document.createElement("div");
    row.className = "param";
    row.append(labeled(name, number), types);
    return row;
  }
}

function labeled(name: string, field: HTMLElement): HTMLLabelElement {
  const label = document.createElement("label");
  const text = document.createElement("code");
  text.textContent = name;
  label.append(text, field);
  return label;
}
