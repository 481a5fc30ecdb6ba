// The methods of tensors that compute element by element.
//
// Each says which function is meant, and nothing else: what is recorded, and what is wrong
// with an operand, is decided in `arithmetic.ts`, for which `tensor.ts` finds the nodes.

import { invalid, kindOf } from "../checks/errors.js";
import { geluOf } from "./arithmetic.js";
import { BINARY, UNARY } from "./codes.js";
import type { Tensor } from "./tensor.js";

/** What tensors compute element by element. */
export abstract class Elementwise {
  /** 0 where an element is negative. */
  relu(): Tensor {
    return this.unary(UNARY.relu);
  }
  /** 1 / (1 + e⁻ˣ). */
  sigmoid(): Tensor {
    return this.unary(UNARY.sigmoid);
  }
  /** Hyperbolic tangent. */
  tanh(): Tensor {
    return this.unary(UNARY.tanh);
  }
  /** x · sigmoid(x). */
  silu(): Tensor {
    return this.unary(UNARY.silu);
  }
  /** The same as {@link silu}, by its other name. */
  swish(): Tensor {
    return this.unary(UNARY.silu);
  }
  /** x · Φ(x), by the error function, or by its usual approximation with tanh. */
  gelu(options?: { approximate?: "tanh" }): Tensor {
    return this.unary(geluOf(options));
  }
  /** eˣ. */
  exp(): Tensor {
    return this.unary(UNARY.exp);
  }
  /** Natural logarithm. */
  log(): Tensor {
    return this.unary(UNARY.log);
  }
  /** Square root. */
  sqrt(): Tensor {
    return this.unary(UNARY.sqrt);
  }
  /** Absolute value. */
  abs(): Tensor {
    return this.unary(UNARY.abs);
  }
  /** −x. */
  neg(): Tensor {
    return this.unary(UNARY.neg);
  }
  /** Sine of radians, for every finite number. */
  sin(): Tensor {
    return this.unary(UNARY.sin);
  }
  /** Cosine of radians, for every finite number. */
  cos(): Tensor {
    return this.unary(UNARY.cos);
  }
  /** The largest whole number that is not above. */
  floor(): Tensor {
    return this.unary(UNARY.floor);
  }
  /** The smallest whole number that is not below. */
  ceil(): Tensor {
    return this.unary(UNARY.ceil);
  }
  /** The nearest whole number, and of two that are as near the even one: 0.5 gives 0, 1.5 gives 2. */
  round(): Tensor {
    return this.unary(UNARY.round);
  }
  /** −1, 0 or 1; NaN of NaN. */
  sign(): Tensor {
    return this.unary(UNARY.sign);
  }

  /** The sum of both. */
  add(other: Tensor | number): Tensor {
    return this.binary(BINARY.add, "add", other);
  }
  /** The difference, element by element: this tensor less the other. */
  sub(other: Tensor | number): Tensor {
    return this.binary(BINARY.sub, "sub", other);
  }
  /** The product, element by element. */
  mul(other: Tensor | number): Tensor {
    return this.binary(BINARY.mul, "mul", other);
  }
  /**
   * The quotient, element by element: this tensor by the other. Division by zero gives infinities and NaN where
   * the device has them: WGSL does not promise it.
   */
  div(other: Tensor | number): Tensor {
    return this.binary(BINARY.div, "div", other);
  }
  /** The smaller element; NaN where either is. */
  minimum(other: Tensor | number): Tensor {
    return this.binary(BINARY.minimum, "minimum", other);
  }
  /** The larger element; NaN where either is. */
  maximum(other: Tensor | number): Tensor {
    return this.binary(BINARY.maximum, "maximum", other);
  }
  /** The power, element by element: this tensor to the power of the other. */
  pow(other: Tensor | number): Tensor {
    return this.binary(BINARY.pow, "pow", other);
  }
  /**
   * What is left of this tensor after whole multiples of the other, with the sign of the
   * other, as in NumPy and TensorFlow.js: −1 by 3 gives 2. NaN by 0. The remainder of
   * floats is exact, however large the quotient.
   */
  mod(other: Tensor | number): Tensor {
    return this.binary(BINARY.mod, "mod", other);
  }
  /** The angle of points in radians, from −π to π: this is y, and `x` the other coordinate. */
  atan2(x: Tensor | number): Tensor {
    return this.binary(BINARY.atan2, "atan2", x);
  }
  /** 1 where this is less than the other, else 0. Comparisons with NaN are 0. */
  less(other: Tensor | number): Tensor {
    return this.binary(BINARY.less, "less", other);
  }
  /** 1 where this is less than the other or equal, else 0. */
  lessEqual(other: Tensor | number): Tensor {
    return this.binary(BINARY.lessEqual, "lessEqual", other);
  }
  /** 1 where this is greater than the other, else 0. */
  greater(other: Tensor | number): Tensor {
    return this.binary(BINARY.greater, "greater", other);
  }
  /** 1 where this is greater than the other or equal, else 0. */
  greaterEqual(other: Tensor | number): Tensor {
    return this.binary(BINARY.greaterEqual, "greaterEqual", other);
  }
  /** 1 where both are equal, else 0. */
  equal(other: Tensor | number): Tensor {
    return this.binary(BINARY.equal, "equal", other);
  }
  /** 0 where both are equal, else 1: NaN differs from all. */
  notEqual(other: Tensor | number): Tensor {
    return this.binary(BINARY.notEqual, "notEqual", other);
  }
  /** Every element times a number. */
  scale(factor: number): Tensor {
    if (typeof factor !== "number") {
      throw invalid("scale", `factor must be a number, got ${kindOf(factor)}`);
    }
    return this.binary(BINARY.mul, "scale", factor);
  }
  /** Each element, or the bound that it is outside of: minimum(maximum(x, low), high). */
  clamp(low: Tensor | number, high: Tensor | number): Tensor {
    return this.bounded(low, high);
  }

  /** Records a function of each element, by its number in {@link UNARY}. */
  protected abstract unary(fn: number): Tensor;
  /** Records a function of two elements, by its number in {@link BINARY}. */
  protected abstract binary(
    fn: number,
    op: string,
    other: Tensor | number,
  ): Tensor;
  /** Records {@link clamp}. */
  protected abstract bounded(
    low: Tensor | number,
    high: Tensor | number,
  ): Tensor;
}
