"""Writes what the peers lint: CloudFormation templates and GitHub workflows of the same length as our playbooks.

As the playbooks do, they hold no mistakes that would let a linter stop early, and no two are alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

_TEMPLATE_HEAD = """\
AWSTemplateFormatVersion: "2010-09-09"
Description: Generated template {number}
Parameters:
  Stage:
    Type: String
    Default: test
    AllowedValues: [test, live]
Resources:
"""

_RESOURCES = (
    """\
  Queue{index}:
    Type: AWS::SQS::Queue
    Properties:
      QueueName: !Sub "queue-{index}-${{Stage}}"
      VisibilityTimeout: {number}
      MessageRetentionPeriod: 86400
      Tags:
        - Key: stage
          Value: !Ref Stage
""",
    """\
  Bucket{index}:
    Type: AWS::S3::Bucket
    Properties:
      BucketEncryption:
        ServerSideEncryptionConfiguration:
          - ServerSideEncryptionByDefault:
              SSEAlgorithm: AES256
      VersioningConfiguration:
        Status: Enabled
      LifecycleConfiguration:
        Rules:
          - Id: expire
            Status: Enabled
            ExpirationInDays: {number}
""",
    """\
  Alarm{index}:
    Type: AWS::CloudWatch::Alarm
    Properties:
      AlarmDescription: !Sub "alarm {index} of ${{Stage}}"
      Namespace: AWS/SQS
      MetricName: ApproximateNumberOfMessagesVisible
      Statistic: Sum
      Period: 300
      EvaluationPeriods: 2
      Threshold: {number}
      ComparisonOperator: GreaterThanThreshold
""",
)

_WORKFLOW_HEAD = """\
name: generated {number}
on:
  push:
    branches: [main]
  pull_request:
permissions:
  contents: read
jobs:
"""

_JOBS = (
    """\
  test_{index}:
    runs-on: ubuntu-latest
    timeout-minutes: {number}
    strategy:
      matrix:
        python: ["3.11", "3.12", "3.13"]
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: ${{{{ matrix.python }}}}
      - name: Install
        run: python -m pip install -e '.[test]'
      - name: Test
        if: ${{{{ github.event_name == 'push' || github.ref == 'refs/heads/main' }}}}
        run: python -m pytest -n {number}
        env:
          SEED: ${{{{ github.run_number }}}}
""",
    """\
  build_{index}:
    runs-on: ubuntu-latest
    outputs:
      version: ${{{{ steps.version.outputs.version }}}}
    steps:
      - uses: actions/checkout@v4
        with:
          fetch-depth: {number}
      - id: version
        run: echo "version={index}" >> "$GITHUB_OUTPUT"
      - name: Build
        run: |
          python -m build
          ls -l dist
      - uses: actions/upload-artifact@v4
        with:
          name: dist-${{{{ runner.os }}}}-{index}
          path: dist
""",
)


def cloudformation_template(number: int, lines: int) -> str:
    """Return the CloudFormation template of that number, of about `lines` lines."""
    return _assembled(_TEMPLATE_HEAD, _RESOURCES, number, lines)


def github_workflow(number: int, lines: int) -> str:
    """Return the GitHub workflow of that number, of about `lines` lines."""
    return _assembled(_WORKFLOW_HEAD, _JOBS, number, lines)


def _assembled(head: str, parts: Sequence[str], number: int, lines: int) -> str:
    """Put parts below a head until the next one might not fit."""
    random = Random(number)
    text = head.format(number=number)
    longest = max(part.count("\n") for part in parts)
    index = 0
    while index == 0 or text.count("\n") + longest <= lines:
        index += 1
        text += random.choice(parts).format(index=index, number=random.randint(1, 300))
    return text
