import { Global, Module } from '@nestjs/common';
import { Metrics } from './metrics.js';

/** The registry of metrics, which every module injects. */
@Global()
@Module({ providers: [Metrics], exports: [Metrics] })
export class MonitoringModule {}
