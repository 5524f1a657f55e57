import { Module } from '@nestjs/common';
import { PlatformModule } from '../platform/platform.module.js';
import { RecordingsController } from './recordings.controller.js';

/** Recordings on their way to the platform's store. */
@Module({ imports: [PlatformModule], controllers: [RecordingsController] })
export class RecordingsModule {}
