import { Injectable } from '@nestjs/common';
import { Metrics } from './metrics.js';

const CLASSES = ['2xx', '3xx', '4xx', '5xx'];

/** Counts answers by the class of their status. */
@Injectable()
export class AnswerCounts {
  private readonly byClass;

  constructor(metrics: Metrics) {
    const labels = CLASSES.map((ofStatus) => ({ class: ofStatus }));
    const counter = metrics.counter('http_answers_total', 'Answers by status class', ['class'], labels);
    this.byClass = labels.map((label) => counter.labels(label));
  }

  count(status: number): void {
    this.byClass[Math.floor(status / 100) - 2]?.inc();
  }
}
