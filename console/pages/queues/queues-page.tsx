import { Link } from 'wouter';

/**
 * Leads to bull-board, which has a policy of its own. It opens in another tab, so that this one goes on watching whether
 * anybody is there.
 */
export default function QueuesPage() {
  return (
    <>
      <h1>Queues</h1>
      <p className="lead">
        A job only tells a worker to look: what there is to do stands in the database, so nothing is lost with a job
        that failed, and there is none to retry here.
      </p>
      <p>
        What waits, and for whom, is on the <Link href="/">Overview</Link>. The board shows the queues themselves: how
        many jobs wait, run or failed, and which workers take them. It opens in a tab of its own, changes nothing, and
        leaves an entry in the <Link href="/audit">audit trail</Link>.
      </p>
      <p>
        <a href="/queues" target="_blank" rel="noreferrer">
          Open the board of the queues
        </a>
      </p>
    </>
  );
}
