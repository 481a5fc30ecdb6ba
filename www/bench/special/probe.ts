// The longest time in which a page could not do anything else.
//
// The probe's own messages follow each other as tasks; what comes between two of them is a
// task of somebody else. Long-task entries of the browser start at 50 ms, too late.

export class Probe {
  private readonly channel = new MessageChannel();
  private last = performance.now();
  private worst = 0;
  private waiting: (() => void)[] = [];

  constructor() {
    this.channel.port1.onmessage = () => this.tick();
    this.channel.port2.postMessage(null);
  }

  /** Milliseconds of the longest task since this was last asked. */
  async longest(): Promise<number> {
    // The task that is just over is noticed by the next message.
    await new Promise<void>((resolve) => this.waiting.push(resolve));
    const { worst } = this;
    this.worst = 0;
    return worst;
  }

  stop(): void {
    this.channel.port1.close();
    this.channel.port2.close();
  }

  private tick(): void {
    const now = performance.now();
    this.worst = Math.max(this.worst, now - this.last);
    this.last = now;
    for (const resolve of this.waiting.splice(0)) resolve();
    this.channel.port2.postMessage(null);
  }
}
