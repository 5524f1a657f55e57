import { Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { PlatformModule } from '../platform/platform.module.js';
import { AuditSealer } from './audit-sealer.js';
import { HealthChecks } from './health-checks.js';
import { Liveness } from './liveness.js';
import { OperationsController } from './operations.controller.js';
import { PartHealth } from './part-health.js';
import { Retention } from './retention.js';

/** What an operator and a load balancer look at. */
@Module({
  imports: [DiscoveryModule, PlatformModule],
  controllers: [OperationsController],
  providers: [AuditSealer, HealthChecks, Liveness, PartHealth, Retention],
})
export class OperationsModule {}
