import { Injectable } from '@nestjs/common';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/** Resolution of the event loop's lag. The usual 10 ms would wake an idle process 100 times a second. */
const LAG_RESOLUTION_MS = 100;

/** The registry behind `/metrics`. Labels are words of the program (states, operations, route patterns), never ids. */
@Injectable()
export class Metrics {
  readonly registry = new Registry();

  constructor() {
    collectDefaultMetrics({ register: this.registry, eventLoopMonitoringPrecision: LAG_RESOLUTION_MS });
  }

  /**
   * A number that only grows.
   *
   * @param name without the prefix, ending in `_total`
   * @param known labels of the series that are there from the start, at 0: Prometheus sees no increase in the first value
   */
  counter<L extends string>(
    name: string,
    help: string,
    labelNames: readonly L[] = [],
    known: readonly Record<L, string>[] = [],
  ): Counter<L> {
    const counter = new Counter(this.named(name, help, labelNames));
    for (const labels of known) counter.inc(labels, 0);
    return counter;
  }

  /** A number that goes up and down. @param collect sets it when it is read; when that throws, it has no value */
  gauge<L extends string>(
    name: string,
    help: string,
    labelNames: readonly L[],
    collect: (gauge: Gauge<L>) => void | Promise<void>,
  ): Gauge<L> {
    return new Gauge({
      ...this.named(name, help, labelNames),
      async collect() {
        try {
          await collect(this);
        } catch {
          this.reset();
        }
      },
    });
  }

  /** A distribution. @param buckets upper bounds in the metric's unit (seconds for `_seconds`) */
  histogram<L extends string>(name: string, help: string, labelNames: readonly L[], buckets: number[]): Histogram<L> {
    return new Histogram({ ...this.named(name, help, labelNames), buckets });
  }

  private named<L extends string>(name: string, help: string, labelNames: readonly L[]) {
    return { name: `notebridge_${name}`, help, labelNames, registers: [this.registry] };
  }
}
