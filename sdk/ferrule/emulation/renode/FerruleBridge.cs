// SPDX-License-Identifier: Apache-2.0
//
// A register window whose device is modelled in another process. Renode compiles this file when a script executes
// `include @FerruleBridge.cs`; docs/renode.md describes the protocol. It is written for C# 6 and the classes of
// Renode 1.15 and later.
using System;
using System.IO;
using System.Net.Sockets;
using System.Text;

using Antmicro.Renode.Core;
using Antmicro.Renode.Exceptions;
using Antmicro.Renode.Logging;
using Antmicro.Renode.Peripherals.Bus;
using Antmicro.Renode.Peripherals.CPU;
using Antmicro.Renode.Peripherals.Timers;
using Antmicro.Renode.Time;

namespace Antmicro.Renode.Peripherals.Miscellaneous
{
    public class FerruleBridge : IDoubleWordPeripheral, IWordPeripheral, IBytePeripheral, IKnownSize, IDisposable
    {
        // frequency: cycles of the device per second of virtual time; timeout: limit in ms for an answer.
        public FerruleBridge(IMachine machine, int port, long size, uint frequency, int timeout = 60000)
        {
            this.machine = machine;
            Size = size;
            IRQ = new GPIO();
            timer = new LimitTimer(machine.ClockSource, frequency, this, "event", limit: 1,
                direction: Direction.Ascending, enabled: false, workMode: WorkMode.OneShot, eventEnabled: true);
            timer.LimitReached += HandleEvent;
            try
            {
                client = new TcpClient();
                client.NoDelay = true;
                client.ReceiveTimeout = timeout;
                client.SendTimeout = timeout;
                client.Connect("127.0.0.1", port);
                stream = client.GetStream();
                Exchange(Kind.Hello, Version, (uint)size, 0);
            }
            catch(Exception e)
            {
                throw new ConstructionException("The model behind port " + port + " does not answer: " + e.Message);
            }
        }

        public uint ReadDoubleWord(long offset)
        {
            return Request(Kind.Read, (uint)offset, 4, 0);
        }

        public void WriteDoubleWord(long offset, uint value)
        {
            Request(Kind.Write, (uint)offset, 4, value);
        }

        public ushort ReadWord(long offset)
        {
            return (ushort)Request(Kind.Read, (uint)offset, 2, 0);
        }

        public void WriteWord(long offset, ushort value)
        {
            Request(Kind.Write, (uint)offset, 2, value);
        }

        public byte ReadByte(long offset)
        {
            return (byte)Request(Kind.Read, (uint)offset, 1, 0);
        }

        public void WriteByte(long offset, byte value)
        {
            Request(Kind.Write, (uint)offset, 1, value);
        }

        public void Reset()
        {
            Request(Kind.Reset, 0, 0, 0);
        }

        public void Dispose()
        {
            lock(sync)
            {
                disposed = true;
                client.Close();
            }
        }

        public long Size { get; private set; }

        public GPIO IRQ { get; private set; }

        private void HandleEvent()
        {
            Request(Kind.Event, 0, 0, 0);
        }

        private uint Request(Kind kind, uint a, uint b, uint c)
        {
            lock(sync)
            {
                if(disposed)
                {
                    return 0;
                }
                if(busy && kind == Kind.Event)
                {
                    reached = true; // while time was synchronised for the current request
                    return 0;
                }
                if(busy)
                {
                    this.Log(LogLevel.Error, "The device's DMA reaches its own registers: ignored");
                    return 0;
                }
                busy = true;
                try
                {
                    return Exchange(kind, a, b, c);
                }
                catch(IOException e)
                {
                    this.Log(LogLevel.Error, "The model is gone: {0}", e.Message);
                    disposed = true;
                    throw new CpuAbortException();
                }
                finally
                {
                    busy = false;
                }
            }
        }

        // Sends a request and serves the model until it answers; virtual time does not advance meanwhile.
        private uint Exchange(Kind kind, uint a, uint b, uint c)
        {
            Send(kind, a, b, c, Elapsed(kind), null);
            while(true)
            {
                Receive();
                switch((Kind)kindOfMessage)
                {
                case Kind.Get:
                    Get(first, (int)second);
                    break;
                case Kind.Put:
                    Put(first, ReceiveBytes((int)third));
                    break;
                case Kind.Line:
                    IRQ.Set(first != 0);
                    break;
                case Kind.Text:
                    this.Log(first != 0 ? LogLevel.Error : LogLevel.Info, "{0}", ReceiveText((int)third));
                    break;
                case Kind.Answer:
                    if(first != 0)
                    {
                        this.Log(LogLevel.Error, "{0}", ReceiveText((int)third));
                    }
                    Arm(fourth);
                    return second;
                default:
                    throw new IOException("unknown message " + kindOfMessage);
                }
            }
        }

        // Cycles since the model's last answer, up to its next event; 0 if no event is pending.
        private ulong Elapsed(Kind kind)
        {
            if(kind == Kind.Event)
            {
                return armed;
            }
            if(armed == 0)
            {
                return 0;
            }
            ICPU cpu;
            if(machine.SystemBus.TryGetCurrentCPU(out cpu))
            {
                cpu.SyncTime();
            }
            return reached ? armed : Math.Min(timer.Value, armed);
        }

        private void Arm(ulong cycles)
        {
            armed = cycles;
            reached = false;
            timer.Enabled = false;
            if(cycles != 0)
            {
                timer.Limit = cycles;
                timer.ResetValue();
                timer.Enabled = true;
            }
        }

        private void Get(uint address, int size)
        {
            try
            {
                var data = machine.GetSystemBus(this).ReadBytes(address, size);
                Send(Kind.Data, 0, 0, (uint)data.Length, 0, data);
            }
            catch(RecoverableException e)
            {
                SendRefusal(e.Message);
            }
        }

        private void Put(uint address, byte[] data)
        {
            try
            {
                machine.GetSystemBus(this).WriteBytes(data, address);
                Send(Kind.Data, 0, 0, 0, 0, null);
            }
            catch(RecoverableException e)
            {
                SendRefusal(e.Message);
            }
        }

        private void SendRefusal(string reason)
        {
            var text = Encoding.UTF8.GetBytes(reason);
            Send(Kind.Data, 1, 0, (uint)text.Length, 0, text);
        }

        private void Send(Kind kind, uint a, uint b, uint c, ulong d, byte[] data)
        {
            var size = data == null ? 0 : data.Length;
            var message = new byte[HeaderSize + size];
            Pack(message, 0, (uint)kind);
            Pack(message, 4, a);
            Pack(message, 8, b);
            Pack(message, 12, c);
            Pack(message, 16, (uint)d);
            Pack(message, 20, (uint)(d >> 32));
            if(size != 0)
            {
                Buffer.BlockCopy(data, 0, message, HeaderSize, size);
            }
            stream.Write(message, 0, message.Length);
        }

        private void Receive()
        {
            var header = ReceiveBytes(HeaderSize);
            kindOfMessage = Unpack(header, 0);
            first = Unpack(header, 4);
            second = Unpack(header, 8);
            third = Unpack(header, 12);
            fourth = Unpack(header, 16) | (ulong)Unpack(header, 20) << 32;
        }

        private string ReceiveText(int size)
        {
            return Encoding.UTF8.GetString(ReceiveBytes(size));
        }

        private byte[] ReceiveBytes(int size)
        {
            if(size < 0 || size > MostBytes)
            {
                throw new IOException("a message of " + size + " bytes");
            }
            var data = new byte[size];
            var have = 0;
            while(have < size)
            {
                var count = stream.Read(data, have, size - have);
                if(count == 0)
                {
                    throw new IOException("it closed the connection");
                }
                have += count;
            }
            return data;
        }

        private static void Pack(byte[] data, int at, uint value)
        {
            for(var i = 0; i < 4; i++)
            {
                data[at + i] = (byte)(value >> 8 * i);
            }
        }

        private static uint Unpack(byte[] data, int at)
        {
            return (uint)(data[at] | data[at + 1] << 8 | data[at + 2] << 16 | data[at + 3] << 24);
        }

        private bool busy;
        private bool disposed;
        private bool reached;
        private ulong armed;
        private uint kindOfMessage;
        private uint first;
        private uint second;
        private uint third;
        private ulong fourth;

        private readonly IMachine machine;
        private readonly LimitTimer timer;
        private readonly TcpClient client;
        private readonly NetworkStream stream;
        private readonly object sync = new object();

        private const uint Version = 1;
        private const int HeaderSize = 24;
        private const int MostBytes = 64 << 20;

        private enum Kind : uint
        {
            Hello = 1,
            Read = 2,
            Write = 3,
            Reset = 4,
            Event = 5,
            Get = 16,
            Put = 17,
            Data = 18,
            Line = 19,
            Text = 20,
            Answer = 32
        }
    }
}
