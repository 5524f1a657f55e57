import { getQueueToken } from '@nestjs/bullmq';
import { Module } from '@nestjs/common';
import { QUEUE_NAMES } from '../queue/backend/queue-names.js';
import { ConsoleController } from './console.controller.js';
import { ConsoleFiles } from './console-files.js';
import { type BoardQueue, QueueBoard } from './queue-board.js';
import { QueuesController } from './queues.controller.js';

/** The administrator's web pages. They speak the HTTP API like any other program; the board of the queues has its own. */
@Module({
  controllers: [ConsoleController, QueuesController],
  providers: [
    ConsoleFiles,
    {
      provide: QueueBoard,
      inject: QUEUE_NAMES.map((name) => getQueueToken(name)),
      useFactory: (...queues: BoardQueue[]) => new QueueBoard(queues),
    },
  ],
})
export class ConsoleModule {}
