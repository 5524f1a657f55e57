import { Global, Module } from '@nestjs/common';
import { FeedController } from './feed.controller.js';
import { Feed } from './feed.js';
import { FeedStream } from './feed-stream.js';

/** What the EHR has to know. */
@Global()
@Module({ controllers: [FeedController], providers: [Feed, FeedStream], exports: [Feed] })
export class FeedModule {}
