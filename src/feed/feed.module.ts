import { Global, Module } from '@nestjs/common';
import { FeedController } from './feed.controller.js';
import { Feed } from './feed.js';
import { FeedRepository } from './feed.repository.js';
import { FeedStream } from './feed-stream.js';
import { FeedWatch } from './feed-watch.js';

/** What the EHR is told. */
@Global()
@Module({ controllers: [FeedController], providers: [Feed, FeedStream, FeedWatch, FeedRepository], exports: [Feed] })
export class FeedModule {}
