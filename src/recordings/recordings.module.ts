import { Module } from '@nestjs/common';
import { PlatformModule } from '../platform/platform.module.js';
import { RecordingsController } from './recordings.controller.js';
import { RecordingsService } from './recordings.service.js';

/** Recordings on their way to the platform's store. */
@Module({ imports: [PlatformModule], controllers: [RecordingsController], providers: [RecordingsService] })
export class RecordingsModule {}
