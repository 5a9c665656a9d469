#!/usr/bin/env python3
"""Learning to balance a pole on a cart, by actor and critic.

The environment is here, too: `CartPole` simulates many carts at once, each row of a tensor one
cart. The actor gives a distribution over pushing left and right (`distributions.Categorical`); the
critic guesses how many steps are still to come. Each update follows the gradient of log-probability
times advantage (Williams, 1992; Mnih et al., 2016).

    python reinforcement.py              # learns in half a minute, writes the learning curve
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from show import Progress, line_chart

import facula
from facula import Tensor, nn
from facula.distributions import Categorical

CARTS, HORIZON, LONGEST = 64, 32, 500
DISCOUNT, TRACE, ENTROPY = 0.99, 0.95, 0.01


class CartPole:
    """`CARTS` poles on carts; state: position, speed, angle, turning speed (Barto et al., 1983)."""

    GRAVITY, CART, POLE, LENGTH, FORCE, SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02

    def __init__(self) -> None:
        self.state = self.fresh(CARTS)  # (CARTS, 4)
        self.steps = facula.zeros(CARTS)

    @staticmethod
    def fresh(n: int) -> Tensor:
        return facula.rand(n, 4) * 0.1 - 0.05

    def step(self, right: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Pushes each cart right (1) or left (0). Returns where that led, which poles fell, which
        episodes ended and how long those were; carts whose episode ended are put back."""
        x, speed, angle, turning = self.state.unbind(1)
        force = self.FORCE * (2 * right - 1)
        total = self.CART + self.POLE
        sine, cosine = angle.sin(), angle.cos()
        push = (force + self.POLE * self.LENGTH * turning**2 * sine) / total
        swing = (self.GRAVITY * sine - cosine * push) / (
            self.LENGTH * (4 / 3 - self.POLE * cosine**2 / total)
        )
        pull = push - self.POLE * self.LENGTH * swing * cosine / total
        t = self.SECONDS
        self.state = facula.stack(
            [x + t * speed, speed + t * pull, angle + t * turning, turning + t * swing], 1
        )
        self.steps += 1
        fallen = (self.state[:, 0].abs() > 2.4) | (self.state[:, 2].abs() > 12 * math.pi / 180)
        # Who lasts long enough starts anew, too, but has not failed: for the critic it goes on.
        ended = fallen | (self.steps >= LONGEST)
        after, lengths = self.state, self.steps[ended]
        self.state = facula.where(ended.unsqueeze(1), self.fresh(CARTS), self.state)
        self.steps = facula.where(ended, 0.0, self.steps)
        return after, fallen, ended, lengths


class ActorCritic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.actor = self.network(2)
        self.critic = self.network(1)

    @staticmethod
    def network(outputs: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs)
        )

    def forward(self, state: Tensor) -> tuple[Categorical, Tensor]:
        scaled = state * facula.tensor([1.0, 1.0, 10.0, 1.0])  # angles are small
        value = 100 * self.critic(scaled).squeeze(-1)  # the network guesses in hundreds of steps
        return Categorical(logits=self.actor(scaled)), value


def advantages(values: Tensor, after: Tensor, fallen: Tensor, ended: Tensor) -> Tensor:
    """How much better each step went than guessed (Schulman et al., 2016); all (HORIZON, CARTS).

    Every step that a pole stands is worth 1. `after` are guesses for the states that steps led to.
    """
    surprises = 1.0 + DISCOUNT * after * ~fallen - values
    result, running = [], facula.zeros(CARTS)
    for surprise, end in zip(surprises.flip(0), ended.flip(0), strict=True):
        running = surprise + DISCOUNT * TRACE * ~end * running
        result.append(running)
    return facula.stack(result[::-1])


def train(model: ActorCritic, updates: int) -> list[float]:
    """Returns the mean length of the last 100 episodes after each update."""
    optimizer = facula.optim.Adam(model.parameters(), lr=1e-3)
    schedule = facula.optim.lr_scheduler.LambdaLR(optimizer, lambda u: 1 - u / updates)
    world, progress, finished, curve = CartPole(), Progress(updates), [], []
    for update in range(1, updates + 1):
        log_probs, values, entropies, afters, falls, ends = [], [], [], [], [], []
        for _ in range(HORIZON):
            policy, value = model(world.state)
            action = policy.sample()
            log_probs.append(policy.log_prob(action))
            entropies.append(policy.entropy())
            values.append(value)
            after, fallen, ended, lengths = world.step(action.float())
            finished += lengths.tolist()
            afters.append(after)
            falls.append(fallen)
            ends.append(ended)
        guesses = facula.stack(values)
        with facula.no_grad():
            _, later = model(facula.stack(afters))
            better = advantages(guesses, later, facula.stack(falls), facula.stack(ends))
            targets = better + guesses
        scaled = (better - better.mean()) / (better.std() + 1e-6)
        actor_loss = -(facula.stack(log_probs) * scaled).mean()
        critic_loss = (((guesses - targets) / 100) ** 2).mean()
        loss = actor_loss + 0.5 * critic_loss - ENTROPY * facula.stack(entropies).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        recent = finished[-100:]
        curve.append(sum(recent) / max(len(recent), 1))
        progress.show(update, f"length {curve[-1]:5.1f}")
    return curve


def main() -> None:
    parser = argparse.ArgumentParser(description="Learn to balance a pole.")
    parser.add_argument("--updates", type=int, default=600)
    parser.add_argument("--out", type=Path, default=Path("reinforcement_out"), help="folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="60 updates, for a fast check")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    facula.manual_seed(options.seed)
    curve = train(ActorCritic(), 60 if options.quick else options.updates)
    print(f"mean length of the last 100 episodes: {curve[-1]:.1f} of {LONGEST} steps")
    chart = options.out / "lengths.svg"
    line_chart(chart, "Steps until the pole falls", {"last 100 episodes": curve}, "update")
    print(f"wrote {chart}")


if __name__ == "__main__":
    main()
