import { Injectable } from '@nestjs/common';

/** The progress of this process's shutdown. */
@Injectable()
export class Stopping {
  /** True once load balancers are asked to send no requests; requests are still answered as usual. */
  isDraining = false;
  /** True once no new work begins and the work in progress ends. */
  isShuttingDown = false;

  startDraining(): void {
    this.isDraining = true;
  }

  startShutdown(): void {
    this.isDraining = true;
    this.isShuttingDown = true;
  }
}
