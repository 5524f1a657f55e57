import { Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { PlatformModule } from '../platform/platform.module.js';
import { CapabilitiesController } from './capabilities.controller.js';
import { HealthController } from './health.controller.js';
import { HealthChecks } from './health-checks.js';
import { Liveness } from './liveness.js';
import { MetricsController } from './metrics.controller.js';
import { DatabaseHealth, WorkersHealth } from './part-health.js';
import { Retention } from './retention.js';
import { RetentionRepository } from './retention.repository.js';

/** What an operator and a load balancer look at. */
@Module({
  imports: [DiscoveryModule, PlatformModule],
  controllers: [CapabilitiesController, HealthController, MetricsController],
  providers: [HealthChecks, DatabaseHealth, Liveness, WorkersHealth, RetentionRepository, Retention],
})
export class OperationsModule {}
