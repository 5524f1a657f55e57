import { Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { PlatformModule } from '../platform/platform.module.js';
import { HealthChecks } from './health-checks.js';
import { OperationsController } from './operations.controller.js';
import { Decisions } from './overview/decisions.js';
import { OverviewRepository } from './overview/overview.repository.js';
import { OverviewController } from './overview.controller.js';
import { Overview } from './overview.js';
import { PartHealth } from './part-health.js';
import { Retention } from './retention.js';
import { WaitingWork } from './waiting-work.js';

/** Health and figures for operators and load balancers. */
@Module({
  imports: [DiscoveryModule, PlatformModule],
  controllers: [OperationsController, OverviewController],
  providers: [Decisions, HealthChecks, Overview, OverviewRepository, PartHealth, Retention, WaitingWork],
})
export class OperationsModule {}
