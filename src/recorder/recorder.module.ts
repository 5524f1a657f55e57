import { Module } from '@nestjs/common';
import { PeopleModule } from '../people/people.module.js';
import { PlatformModule } from '../platform/platform.module.js';
import { RecorderController } from './recorder.controller.js';
import { RecorderService } from './recorder.service.js';

/** The browser recorder, opened through a single-use token. */
@Module({ imports: [PlatformModule, PeopleModule], controllers: [RecorderController], providers: [RecorderService] })
export class RecorderModule {}
